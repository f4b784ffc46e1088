export { boskos } from "./boskos.ts";
