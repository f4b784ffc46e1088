export * from "./config.ts";
export * from "./driver.ts";
