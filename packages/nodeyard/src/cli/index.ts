export { main } from "./main.ts";
export type { Io } from "./session.ts";
