// Loaded with --import: appends the URL of each module that the process loads to the file that LOADED names.
import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";

registerHooks({
  load(url, context, next) {
    if (url.startsWith("file:")) appendFileSync(process.env.LOADED, `${url}\n`);
    return next(url, context);
  },
});
