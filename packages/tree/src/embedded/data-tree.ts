export * from "../engine/data-tree.ts";
