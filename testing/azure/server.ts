import { systemClock } from "@nodeyard/runtime";
import { listen } from "../double-server.ts";
import { AzureDouble } from "./double/azure.ts";
import type { AzureSettings } from "./double/settings.ts";

/** A double that listens on a free loopback port. */
export async function startAzure(settings: Partial<AzureSettings> = {}) {
  const double = new AzureDouble(systemClock, settings);
  const server = await listen(double);
  double.url = server.url;
  return { double, ...server };
}
