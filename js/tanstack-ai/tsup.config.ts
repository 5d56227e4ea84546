import { defineConfig } from "tsup";
import { library } from "../tsup.library.ts";

export default defineConfig(library());
