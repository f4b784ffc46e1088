export { meadowDriver } from "./edge/host.ts";
