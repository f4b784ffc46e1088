export * from "./connect.ts";
