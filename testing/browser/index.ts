export { openBrowser, requireChromium } from "./chromium.ts";
export { type Call, PoolSite } from "./pool-site.ts";
export { HELD_FOR, listed, type Row, type Seeded, seed } from "./seed.ts";
export { DESKTOP, PHONE, type Watched, watch } from "./watched.ts";
