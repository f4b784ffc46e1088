export { type Column, columns, pick, type Row } from "./columns.ts";
export {
  buildColumns,
  buildRow,
  imageColumns,
  imageRow,
  trialColumn,
  uploadColumns,
  uploadRow,
} from "./image-rows.ts";
export { nodeColumns, nodeDetailColumns, nodeRow, oldNodeColumns } from "./node-rows.ts";
export { labelColumns, requestColumns, requestRow } from "./request-rows.ts";
export { age, cell, plain, renderTable, span, Table } from "./table.ts";
