import manifest from "../../package.json" with { type: "json" };

/** Nodeyard's own version. */
export const VERSION: string = manifest.version;
