export { openBrowser, requireChromium } from "./chromium.ts";
export { type Call, PoolSite } from "./pool-site.ts";
export { run } from "./program.ts";
export { HELD_FOR, JOB, listed, type Row, type Seeded, seed } from "./seed.ts";
export { views } from "./views.ts";
export { live, settled, visit } from "./visit.ts";
export { DESKTOP, load, PHONE, type Watched, watch } from "./watched.ts";
