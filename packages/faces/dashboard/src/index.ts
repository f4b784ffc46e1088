export { type PageFile, readPage } from "./edge/read-page.ts";
