import * as agui from "@ag-ui/client";
import * as client from "../src/index.ts";
import { testClient } from "./suite.ts";

testClient({ agui, client }, 40);
