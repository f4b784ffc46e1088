import { ANY, type ApiRole, apiRoles, type Token } from "@nodeyard/model";
import { ageIn, columns, type Row } from "@nodeyard/operations/listing";
import { type Command, Option } from "commander";
import { parseDuration } from "../arguments.ts";
import { withBackend } from "../backend/index.ts";
import { printJson, printRows, printSkipped } from "../listing.ts";
import { personOf, type Session } from "../session.ts";

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
  State: "state",
  "Time Left": "time_left",
  "Created By": "created_by",
});

/** `nodeyard token create`, `list` and `revoke`. Processes that serve the API learn of a change by the tree's events. */
export function defineToken(command: Command, session: Session): void {
  addCreate(command.command("create").description("make a token and print it: it is shown once"), session);
  command
    .command("list")
    .description("list the tokens, those included that have ended")
    .option("--json", "an array of objects on stdout; ages are seconds")
    .action(({ json = false }: { readonly json?: boolean }) =>
      withBackend(session, async (backend) => {
        const { items, skipped } = await backend.tokens();
        const now = backend.now();
        const rows = items.map((token) => tokenRow(token, now, json ? "seconds" : "text"));
        printRows(session.io, rows, tokenColumns, { json, jsonAlso: ["expires", "revoked_by"] });
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
        await backend.revokeToken(name, personOf(session));
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
        const wanted = { name, role, labels: label ?? unless, tenants: tenant ?? unless, forMs };
        const made = await backend.createToken({ ...wanted, by: personOf(session) });
        const expires = new Date(made.expires).toISOString();
        if (json === true) return printJson(session.io, { name, token: made.text, expires });
        session.io.out(`${made.text}\n`);
        session.io.err(`it is not shown again, and expires at ${expires}\n`);
      }),
    );
}

/** A row without the hash. `now`: the time that expiry is judged by, milliseconds of the tree. */
function tokenRow(token: Omit<Token, "hash" | "created">, now: number, ages: "text" | "seconds"): Row {
  const { name, role, labels, tenants, expires, revoked } = token;
  const state = revoked !== null ? "revoked" : expires <= now ? "expired" : "valid";
  return {
    ...{ name, role, labels, tenants, state },
    time_left: ageIn(ages, (expires - now) / 1_000),
    created_by: token.createdBy,
    expires: new Date(expires).toISOString(),
    revoked_by: token.revokedBy,
  };
}
