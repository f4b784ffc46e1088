import { METADATA, proxyOf } from "@nodeyard/driver";
import { openFile, USUAL_TLS, wireOf } from "@nodeyard/driver/http";
import { textIfExists } from "@nodeyard/runtime";
import { createIbmDriver, type IbmHost } from "../driver.ts";

const { env } = process;
/** No proxy reaches the metadata service. */
const proxyFor = (url: string) => (url.startsWith(`${METADATA}/`) ? null : proxyOf(url, env, "requests"));

/** Environment, files and network of this host. Files are read at each login, so that changes take effect. */
export const thisHost: IbmHost = {
  around: { env, read: textIfExists },
  connect: () => wireOf(USUAL_TLS, proxyFor),
  openFile,
};

/** The `ibmvpc` driver. */
export const ibmvpcDriver = createIbmDriver(thisHost);
