import type { WebappConfig } from "../../config/index.ts";
import type { FrontPlaces } from "./front.ts";

/** The file in the state folder by which the process can be looked at. */
export const HTTP_SOCKET = "http.sock";

/** What the command line says of where a process is to be looked at. */
export interface FrontWish {
  /** `always`: where the configuration says, or would by its defaults. `named`: where it says. `never`. */
  readonly configured: "always" | "named" | "never";
  /** In place of what the configuration says. */
  readonly tcp?: { readonly host: string; readonly port: number };
  readonly token?: string;
  /** Whether there is a Unix socket in the state folder, too. */
  readonly socket: boolean;
}

export function frontPlaces(
  wish: FrontWish | undefined,
  { port, listenAddress, isNamed }: WebappConfig,
  stateFolder: string,
): FrontPlaces {
  if (wish === undefined) return {};
  const { configured, tcp, token, socket } = wish;
  const asConfigured = configured === "always" || (configured === "named" && isNamed);
  const place = tcp ?? (asConfigured ? { host: listenAddress, port } : undefined);
  return {
    ...(socket ? { socket: `${stateFolder}/${HTTP_SOCKET}` } : {}),
    ...(place === undefined ? {} : { tcp: place }),
    ...(token === undefined ? {} : { token }),
  };
}
