export { zuul } from "./kind.ts";
