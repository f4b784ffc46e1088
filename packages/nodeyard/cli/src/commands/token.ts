import { ANY, type ApiRole, apiRoles } from "@nodeyard/model";
import { columns, jsonOnly, msOf, type Row, timeLeft, type When } from "@nodeyard/operations/listing";
import { type Command, Option } from "commander";
import { parseDuration } from "../arguments.ts";
import { withBackend } from "../backend/with-backend.ts";
import { printJson, printRows, printSkipped } from "../listing.ts";
import type { Session } from "../session.ts";

/** Labels and tenants that are absent mean none for a user, and all for the other roles. */
interface CreateOptions {
  readonly role: ApiRole;
  readonly label?: readonly string[];
  readonly tenant?: readonly string[];
  /** Milliseconds. */
  readonly for: number;
  readonly json?: boolean;
}

/** Milliseconds: 90 days, so that a forgotten token ends by itself. */
const DEFAULT_MS = 90 * 86_400_000;

const tokenColumns = columns({
  Name: "name",
  Role: "role",
  Labels: "labels",
  Tenants: "tenants",
  State: ["state", stateOf],
  "Time Left": ["time_left", timeLeft],
  "Created By": "created_by",
});

/** What only `--json` shows. */
const tokenJson = jsonOnly("expires", "revoked_by");

/** `nodeyard token create`, `list` and `revoke`. Processes that serve the API learn of a change by the tree's events. */
export function defineToken(command: Command, session: Session): void {
  addCreate(command.command("create").description("make a token and print it: it is shown once"), session);
  command
    .command("list")
    .description("list the tokens, those included that have ended")
    .option("--json", "an array of objects on stdout; ages are seconds")
    .action(({ json = false }: { readonly json?: boolean }) =>
      withBackend(session, async (backend) => {
        const { rows, skipped } = await backend.list("list_tokens");
        printRows(session.io, rows, tokenColumns, { json, jsonAlso: tokenJson, now: backend.now() });
        printSkipped(session.io, skipped);
      }),
    );
  command
    .command("revoke")
    .description("end a token at once, in every process that serves the API")
    .argument("<name>", 'its name, as "nodeyard token list" shows it')
    .option("--json", "an object on stdout: name, state")
    .action((name: string, { json }: { readonly json?: boolean }) =>
      withBackend(session, async (backend) => {
        await backend.call("revoke_token", { path: { name } });
        if (json === true) printJson(session.io, { name, state: "revoked" });
        else session.io.out(`revoked ${name}\n`);
      }),
    );
}

/** The token alone goes to stdout, so that it can be redirected to a file; the remark goes to stderr. */
function addCreate(command: Command, session: Session): void {
  const several = (value: string, before: readonly string[] = []) => [...before, value];
  command
    .argument("<name>", "what it is called: a-z, 0-9 and -")
    .addOption(
      new Option("--role <role>", "what its client may do").choices(apiRoles).makeOptionMandatory(true),
    )
    .option("--label <label>", `limits it to this label; may be repeated, "${ANY}" is all`, several)
    .option("--tenant <tenant>", `limits it to this tenant; may be repeated, "${ANY}" is all`, several)
    .addOption(
      new Option("--for <duration>", "how long it is good")
        .argParser(parseDuration)
        .default(DEFAULT_MS, "90d"),
    )
    .option("--json", "an object on stdout: name, token, expires")
    .action((name: string, { role, label, tenant, json, for: forMs }: CreateOptions) =>
      withBackend(session, async (backend) => {
        // A user has the limits that are named, and so none by default.
        const unless = role === "user" ? [] : [ANY];
        const wanted = { name, role, labels: [...(label ?? unless)], tenants: [...(tenant ?? unless)] };
        const made = await backend.call("create_token", {
          body: { ...wanted, for_seconds: Math.ceil(forMs / 1_000) },
        });
        if (json === true) return printJson(session.io, made);
        session.io.out(`${made.token}\n`);
        session.io.err(`it is not shown again, and expires at ${made.expires}\n`);
      }),
    );
}

/** By the time of the tree. */
function stateOf({ revoked, expires }: Row, { now }: When): string {
  if (revoked !== null) return "revoked";
  return (msOf(expires) ?? 0) <= now ? "expired" : "valid";
}
