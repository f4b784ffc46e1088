export { EXIT_CODES } from "./errors.ts";
export { main } from "./main.ts";
export type { Io } from "./session.ts";
