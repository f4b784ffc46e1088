import { seesEverything } from "../data/api.ts";
import { hrefOf } from "../data/route.ts";
import { nodesByLabel, rows, versions, waitingFor } from "../data/state.ts";
import { Facts } from "../ui/facts.tsx";
import { History } from "../ui/history.tsx";
import { Section, StateBar } from "../ui/pieces.tsx";
import { Story } from "../ui/story.tsx";

export function LabelView({ id = "" }: { readonly id: string | undefined }) {
  void versions.node.value;
  void versions.request.value;
  const offering = rows("pool").filter(({ labels }) => labels.includes(id));
  return (
    <>
      <header>
        <h1>Label {id}</h1>
        <div class="actions">
          <a href={hrefOf("nodes", undefined, { q: id })}>Nodes</a>
          <a href={hrefOf("requests", undefined, { q: id })}>Requests</a>
        </div>
      </header>
      <Section title="Nodes now">
        <div class="stack">
          <StateBar counts={nodesByLabel.of(id)} />
          <Facts facts={{ ...Object.fromEntries(nodesByLabel.of(id)), waiting_requests: waitingFor(id) }} />
        </div>
      </Section>
      {seesEverything() && <History of={{ label: id }} />}
      <Story kind="label" id={id} facts={{ offered_by: offering.map(({ id: pool }) => pool) }} />
    </>
  );
}
