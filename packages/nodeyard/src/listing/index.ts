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
export {
  accessRow,
  labelColumns,
  nodeColumns,
  nodeDetailColumns,
  nodeRow,
  oldNodeColumns,
  requestColumns,
  requestRow,
} from "./rows.ts";
export { type AgeFormat, age, ageIn, cell, plain, renderTable, span, Table } from "./table.ts";
