export { age, cell, plain, renderTable, span } from "../listing/index.ts";
