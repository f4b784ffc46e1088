export { COMPLETIONS, type Shell } from "./completion.ts";
export type { Described } from "./described.ts";
export { EXIT_CODES } from "./errors.ts";
export { describeProgram, main } from "./main.ts";
export type { Io } from "./session.ts";
