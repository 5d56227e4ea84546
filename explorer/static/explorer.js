import "./copy.js";
import "./endless.js";
import "./live.js";
import "./time.js";

// The selected run of a long tree is in view.
document.querySelector(".tree .selected")?.scrollIntoView({ block: "nearest" });
