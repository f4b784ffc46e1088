export { simulateSliverHost } from "./run.ts";
