import "./endless.js";
