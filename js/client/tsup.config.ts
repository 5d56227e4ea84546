import { defineConfig } from "tsup";
import { library } from "../tsup.library.ts";

export default defineConfig(library(["src/index.ts", "src/assistant-ui.ts"]));
