import { CloudConfigError, keepSecret, messageOf, NoAnswer } from "@nodeyard/driver";
import { usualHost } from "@nodeyard/driver/http";
import { createGceDriver, type GceHost } from "../driver.ts";
import { REMEDY } from "../errors.ts";

const SCOPES = "https://www.googleapis.com/auth/cloud-platform";

/** Files, environment and network of this host. */
export const thisHost: GceHost = {
  // httplib2 of Nodepool's client reads the same variables as urllib.
  ...usualHost("botocore"),
  async logIn(file) {
    // Here, so that only who signs in loads it.
    const { GoogleAuth } = await import("google-auth-library");
    // Made anew each time: it keeps what it has read from its file. A deprecated option, as it takes each kind of file: the operator named it.
    const auth = new GoogleAuth({ scopes: SCOPES, ...(file !== null && { keyFilename: file }) });
    try {
      const client = await auth.getClient();
      const { token: text } = await client.getAccessToken();
      if (!text) throw new Error("the credentials give no token");
      keepSecret(text);
      return { text, end: client.credentials.expiry_date ?? null };
    } catch (error) {
      throw loginError(error);
    }
  },
};

/** Google's library gives the request with the errors of its requests; what else it says is about the credentials. */
function loginError(error: unknown): Error {
  const { config, status, code } = error as { config?: object; status?: unknown; code?: unknown };
  const isRefused = [400, 401, 403].includes(Number(status ?? code));
  const text = `no token of Google Cloud: ${messageOf(error)}`;
  if (config !== undefined && !isRefused) return new NoAnswer(text, { cause: error });
  return new CloudConfigError(`${text}; ${REMEDY}`, { cause: error });
}

/** The `gce` driver. */
export const gceDriver = createGceDriver(thisHost);
