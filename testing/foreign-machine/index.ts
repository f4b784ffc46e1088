export { ForeignMachine } from "./machine.ts";
