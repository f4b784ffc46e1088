import { Clouds } from "../cloud/clouds.ts";
import { fakeConfig } from "../config.ts";
import { createFakeDriver } from "../driver.ts";
import { FileJournal } from "./file-journal.ts";
import { folderShelf } from "./folder-shelf.ts";

const clouds = new Clouds((path) => new FileJournal(path));

/** The `fake` driver. Clouds are shared by name within the process, and by their journal between processes. */
export const fakeDriver = createFakeDriver({
  config: fakeConfig,
  shelfOf: folderShelf,
  cloudOf: (own, clock, random) => clouds.open(own, clock, random),
});
