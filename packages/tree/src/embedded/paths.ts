export * from "../engine/paths.ts";
