export { API_KEY, COMPUTE_TOKEN, type IbmCall, IbmCloud } from "./double/cloud.ts";
export type { IbmFault, IbmSettings } from "./double/settings.ts";
export { ACCOUNT, REGION } from "./double/site.ts";
