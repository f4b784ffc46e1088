export { openBrowser, requireChromium } from "./chromium.ts";
export { type Call, PoolSite } from "./pool-site.ts";
export { run } from "./program.ts";
export { HELD_FOR, listed, type Row, type Seeded, seed } from "./seed.ts";
export { live, visit } from "./visit.ts";
export { DESKTOP, PHONE, type Watched, watch } from "./watched.ts";
