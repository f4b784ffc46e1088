export { BuilderRole } from "./builder-role.ts";
export { Front } from "./front.ts";
export { LauncherRole } from "./launcher-role.ts";
export { type FrontWish, frontPlaces, HTTP_SOCKET } from "./places.ts";
