import { render } from "preact";
import { startClock } from "./data/clock.ts";
import { followAddress } from "./data/route.ts";
import { startTheme } from "./data/theme.ts";
import { App } from "./ui/app.tsx";

startTheme();
startClock();
followAddress();
render(<App />, document.getElementById("app")!);
