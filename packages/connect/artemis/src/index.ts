export { artemis } from "./artemis.ts";
