import { keepSecret } from "@nodeyard/runtime";
import { neededText, type ReadFile } from "./config/cloud-file.ts";
import { CloudConfigError, callText, NoAnswer, type SaidFault } from "./faults.ts";
import { type HttpAnswer, jsonIn, type Unsent } from "./wire.ts";

/** Where credentials are read: variables of the process, and files. */
export interface Around {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly read: ReadFile;
}

/** What authorizes calls as it is. */
export interface BearerToken {
  readonly text: string;
  /** Wall time of its end, milliseconds; null: none is known. */
  readonly end: number | null;
}

/** The metadata service, at the address that clouds have agreed on: a machine's own link, so that no proxy reaches it. */
export const METADATA = "http://169.254.169.254";

/** Statuses by which a login refuses credentials, or does not know whose they are; any other may pass. */
const REFUSED = [400, 401, 403, 404];

/** The text of a file that is a secret, as a token that a cluster or a CI renews in place is. Throws CloudConfigError. */
export function secretText(path: string, read: ReadFile): string {
  const text = neededText(path, read).trim();
  keepSecret(text);
  return text;
}

/** A request for a token as OAuth has it. Fields without a value are left out. */
export function tokenForm(url: string, fields: Readonly<Record<string, string | null>>): Unsent {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== null) form.set(name, value);
  const headers = { "content-type": "application/x-www-form-urlencoded", accept: "application/json" };
  return { method: "POST", url, headers, body: form.toString() };
}

/** The token that a login gives. Rejects with CloudConfigError when it refuses, and with NoAnswer for what may pass. `fault`: its own words. */
export async function grantedToken(
  ask: (request: Unsent) => Promise<HttpAnswer>,
  request: Unsent,
  fault: (answer: HttpAnswer) => SaidFault,
  now: number,
): Promise<BearerToken> {
  const answer = await ask(request);
  const { access_token: text, expires_in: lasts, expires_on: until } = jsonIn(answer.text);
  const end = Number(lasts) > 0 ? now + Number(lasts) * 1_000 : Number(until) * 1_000;
  // Without an end each call would sign in anew.
  if (answer.status < 300 && typeof text === "string" && end > now) {
    keepSecret(text);
    return { text, end };
  }
  const why = answer.status < 300 ? "no token with an end to come" : fault(answer).text;
  const said = `${callText(request)} was answered ${answer.status}: ${why ?? "no reason is given"}`;
  throw REFUSED.includes(answer.status)
    ? new CloudConfigError(`${said}; check the credentials`)
    : new NoAnswer(said);
}

/** Throws when credentials that were replaced are for another account: its lists would lack the machines that are there, as if somebody had deleted them. */
export function assertStill(opened: string, now: string): void {
  if (now.toLowerCase() !== opened.toLowerCase())
    throw new CloudConfigError(
      `the credentials are for ${now} now, and the provider for ${opened}; give it another name, or change them back`,
    );
}
