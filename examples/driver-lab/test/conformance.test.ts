import { driverConformance } from "@nodeyard/driver-testkit";
import { describe, expect, test } from "vitest";
import { labDriver } from "../src/index.ts";
import { labRig } from "./rig.ts";

driverConformance("lab", labDriver, labRig, { describe, test, expect });
