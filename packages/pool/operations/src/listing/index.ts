export * from "./columns.ts";
export * from "./fields.ts";
export * from "./image-rows.ts";
export * from "./provider-records.ts";
export * from "./rows.ts";
export * from "./standing-rows.ts";
export * from "./survey-rows.ts";
export * from "./table.ts";
