import { connect } from "@nodeyard/client";
import { nodeShell, openSsh, readSecret } from "@nodeyard/connect";
import { garm, garmCall } from "@nodeyard/connect-garm";
import { defined } from "@nodeyard/runtime";
import type { Command } from "commander";
import { CommandFailed } from "../errors.ts";
import { logOf } from "../log.ts";
import type { Session } from "../session.ts";

/** `nodeyard garm` */
export function defineGarm(command: Command, session: Session): void {
  const { io, machine } = session;
  command
    .addHelpText(
      "after",
      "\nGARM calls it, by a script of one line, and says by environment variables and on stdin what it wants. GARM_PROVIDER_CONFIG_FILE has" +
        "\nthe address of the pool. Exit code 30: there is no such instance.",
    )
    .action(async () => {
      const { clock, random, env } = machine;
      const { code, out, err } = await garm(garmCall(env), {
        clock,
        pool: ({ nodeyard: { url, "token-file": file } }) =>
          connect(url, { clock, random, ...defined({ token: file && readSecret(file) }) }),
        shell: ({ ssh }) => nodeShell(openSsh(ssh["identity-file"]), { clock, random, log: logOf(session) }),
      });
      io.out(out);
      io.err(err);
      if (code !== 0) throw new CommandFailed(code);
    });
}
