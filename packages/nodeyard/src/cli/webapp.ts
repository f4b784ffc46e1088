import type { Command } from "commander";
import { type FrontWish, readText } from "../process/index.ts";
import { parseAddress } from "./arguments.ts";
import { UsageError } from "./errors.ts";

/** Options of every daemon's web interface, as commander has them. */
export interface WebappOptions {
  /** False: --no-webapp. */
  readonly webapp?: { readonly host: string; readonly port: number } | false;
  readonly webappToken?: string;
}

/** Shorter ones could be guessed. */
const MIN_TOKEN = 16;

/** `unless`: where it listens without the option, for the help. */
export function addWebappOptions(command: Command, unless: string): Command {
  return command
    .option(
      "--webapp <host:port>",
      `address of the HTTP interface: lists, health and metrics; default: ${unless}`,
      (text) => parseAddress(text, "--webapp"),
    )
    .option("--no-webapp", "do not open the HTTP interface")
    .option(
      "--webapp-token <file>",
      "file with the token that clients send as `Authorization: Bearer TOKEN`",
    );
}

/** Throws UsageError for a token that is none. */
export function frontWish(
  { webapp, webappToken }: WebappOptions,
  unless: Pick<FrontWish, "configured" | "socket">,
): FrontWish | undefined {
  if (webapp === false) return undefined;
  const token = webappToken === undefined ? {} : { token: tokenIn(webappToken) };
  return { ...unless, ...(webapp === undefined ? {} : { tcp: webapp }), ...token };
}

function tokenIn(file: string): string {
  const token = readText(file, "the token").trim();
  if (token.length < MIN_TOKEN || /\s/.test(token))
    throw new UsageError(
      `${file} holds no token: one word of ${MIN_TOKEN} characters or more; make one with "openssl rand -hex 16"`,
    );
  return token;
}
