import type { Method, TargetMethod } from "../context.ts";
import { DOCUMENT_METHODS } from "./documents.ts";
import { NODE_METHODS } from "./node.ts";
import { RESOURCE_METHODS } from "./resources.ts";
import { SLIVER_METHODS } from "./slivers.ts";

/** The whole vocabulary by name; a dialect has some of it. */
export const METHODS: ReadonlyMap<string, Method | TargetMethod> = new Map(
  [...SLIVER_METHODS, ...RESOURCE_METHODS, ...NODE_METHODS, ...DOCUMENT_METHODS].map((one) => [
    one.name,
    one,
  ]),
);
