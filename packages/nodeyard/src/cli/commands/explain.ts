import type { Command } from "commander";
import { type Explained, explain, treeNow } from "../../operations/index.ts";
import { JOURNAL, readJournal } from "../../telemetry/index.ts";
import { parseSubject } from "../arguments.ts";
import { CommandError } from "../errors.ts";
import { type Session, stateOf, withTree } from "../session.ts";
import { storyJson, storyText } from "../story.ts";

export function addExplain(program: Command, session: Session): void {
  program
    .command("explain")
    .description("say what a request, lease or node is doing, what it waits for and what happens next")
    .argument(
      "<id>",
      'id of a request, a lease or a node, as the listings or "request" show it',
      parseSubject,
    )
    .option("--json", "an object on stdout")
    .addHelpText(
      "after",
      "\nHistory and reasons come from the journal in the state folder: run it where the launcher runs, as its user.",
    )
    .action((subject: Explained, { json }: { readonly json?: boolean }) =>
      withTree(session, async (handles) => {
        const journal = `${stateOf(session)}/${JOURNAL}`;
        const story = await explain(handles, subject, (wanted) => readJournal(journal, wanted));
        if (story === undefined) {
          const { problem } = readJournal(journal, {});
          throw new CommandError(
            "cli.nothing_known",
            `there is no ${subject.kind} ${subject.id}, and ${problem ?? `the journal ${journal} does not know it`}; see "nodeyard list", "list --leases" and "request-list"`,
          );
        }
        const text = json === true ? storyJson(story, journal) : storyText(story, journal, treeNow(handles));
        session.io.out(text);
      }),
    );
}
