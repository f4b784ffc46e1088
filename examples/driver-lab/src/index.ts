export { labDriver } from "./driver.ts";
