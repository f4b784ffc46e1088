import { size } from "@nodeyard/client/amounts";
import { span } from "@nodeyard/client/steps";
import { useState } from "preact/hooks";
import { call, list, mayOperate } from "../data/api.ts";
import { hrefOf } from "../data/route.ts";
import type { BuildRow, ImageRow, Progress, UploadRow } from "../data/rows.ts";
import { row, rows, versions } from "../data/state.ts";
import { BuildLog } from "../ui/build-log.tsx";
import { Action } from "../ui/dialog.tsx";
import { Age, Problem, Section, State } from "../ui/pieces.tsx";
import { Story } from "../ui/story.tsx";
import { useChange, useLoad } from "../ui/use.ts";

export function ImagesView({ id }: { readonly id: string | undefined }) {
  if (id !== undefined) return <ImageView name={id} />;
  const images = rows("image").toSorted((one, other) => (one.image < other.image ? -1 : 1));
  return (
    <>
      <header>
        <h1>
          Images <span class="count">{images.length}</span>
        </h1>
      </header>
      {images.length === 0 && (
        <p class="dim">
          There are no images. Add one under <code>diskimages</code> in nodepool.yaml: a builder builds it,
          and uploads it to the providers that name it.
        </p>
      )}
      <ul class="cards grid">
        {images.map((image) => (
          <Card key={image.image} image={image} />
        ))}
      </ul>
      <Work path="" title="Builds and uploads" />
    </>
  );
}

function Card({
  image: { image, paused, build_requested, builds, uploaded_to, uploading_to },
}: {
  readonly image: ImageRow;
}) {
  const counts = Object.entries(builds).filter(([, count]) => count > 0);
  return (
    <li>
      <h2>
        <a href={hrefOf("images", image)}>{image}</a> {paused && <State state="paused" />}
      </h2>
      <p>
        {counts.length === 0 && <span class="dim">no build</span>}
        {counts.map(([state, count]) => (
          <span key={state} class="chip">
            <State state={state} /> {count}
          </span>
        ))}
        {build_requested && <span class="chip">build requested</span>}
      </p>
      <p class="dim">
        <Providers are="uploaded to" names={uploaded_to} />
        {uploading_to.length > 0 && (
          <>
            ; <Providers are="being uploaded to" names={uploading_to} />
          </>
        )}
      </p>
    </li>
  );
}

function Providers({ are, names }: { readonly are: string; readonly names: readonly string[] }) {
  if (names.length === 0) return <>uploaded to no provider</>;
  return (
    <>
      {are}{" "}
      {names.map((name, index) => (
        <span key={name}>
          {index > 0 && ", "}
          <a href={hrefOf("providers", name)}>{name}</a>
        </span>
      ))}
    </>
  );
}

function ImageView({ name }: { readonly name: string }) {
  const image = row("image", name);
  return (
    <>
      <header>
        <h1>Image {name}</h1>
        {image !== undefined && mayOperate() && <Actions image={image} />}
      </header>
      <Story kind="image" id={name} />
      <Work path={`?image=${encodeURIComponent(name)}`} title="Builds" />
    </>
  );
}

function Actions({ image: { image, paused, build_requested } }: { readonly image: ImageRow }) {
  const path = `/v1/images/${encodeURIComponent(image)}`;
  const verb = paused ? "unpause" : "pause";
  return (
    <div class="actions">
      {!build_requested && (
        <Action title={`Build ${image}`} verb="Build" action={() => call("POST", `${path}/build`)}>
          <p>A builder builds it as soon as it has nothing else to do.</p>
        </Action>
      )}
      <Action
        title={`${paused ? "Resume" : "Pause"} builds of ${image}`}
        verb={paused ? "Resume" : "Pause"}
        action={() => call("POST", `${path}/${verb}`)}
      >
        <p>Uploads of its builds continue.</p>
      </Action>
    </div>
  );
}

/** Milliseconds between reads of the progress of a build or upload. Progress causes no events. */
const PROGRESS_MS = 2_000;

function Work({ path, title }: { readonly path: string; readonly title: string }) {
  const { data, error, reload } = useLoad(`work ${path}`, async () => ({
    builds: await list<BuildRow>(`/v1/builds${path}`),
    uploads: await list<UploadRow>(`/v1/uploads${path}`),
    at: Date.now(),
  }));
  useChange(versions.image.value, 300, reload);
  const isUnderWay =
    data !== undefined && [...data.builds, ...data.uploads].some(({ progress }) => progress !== null);
  useChange(isUnderWay ? data.at : 0, PROGRESS_MS, () => isUnderWay && !document.hidden && reload());
  const [all, setAll] = useState(false);
  const builds =
    data?.builds.toSorted((one, other) => ((one.since ?? "") < (other.since ?? "") ? 1 : -1)) ?? [];
  const SHOWN = 20;
  return (
    <Section title={title}>
      <Problem error={error} />
      {data !== undefined && builds.length === 0 && (
        <p class="dim">
          Nothing is built yet. A builder builds what is configured, and what “Build” requests.
        </p>
      )}
      <ul class="cards">
        {builds.slice(0, all ? undefined : SHOWN).map((build) => (
          <li key={build.id}>
            <h3>
              {path === "" && <a href={hrefOf("images", build.image)}>{build.image}</a>}{" "}
              <State state={build.state} /> <Age at={build.since} />
            </h3>
            <p class="dim">
              {[build.formats.join(", "), build.builder !== null && `by ${build.builder}`, build.id]
                .filter(Boolean)
                .join(", ")}
            </p>
            <ProgressBar progress={build.progress} what={`build ${build.id}`} />
            {mayOperate() && <BuildLog id={build.id} />}
            <ul class="lines">
              {data?.uploads
                .filter((upload) => `${upload.image}-${upload.build}` === build.id)
                .map((upload) => (
                  <li key={upload.id}>
                    <State state={upload.state} />
                    <span class="grow">
                      <a href={hrefOf("providers", upload.provider)}>{upload.provider}</a>{" "}
                      {upload.external_name !== null && <code class="dim">{upload.external_name}</code>}
                    </span>
                    <Age at={upload.since} />
                    <ProgressBar progress={upload.progress} what={`upload to ${upload.provider}`} />
                  </li>
                ))}
            </ul>
          </li>
        ))}
      </ul>
      {!all && builds.length > SHOWN && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {builds.length}
        </button>
      )}
    </Section>
  );
}

function ProgressBar({ progress, what }: { readonly progress: Progress | null; readonly what: string }) {
  if (progress === null) return null;
  const { phase, bytes, total_bytes: total, bytes_per_second: rate, eta_seconds: eta } = progress;
  return (
    <p class="progress">
      <progress aria-label={what} {...(total !== null && { value: bytes, max: total })} />
      <span class="dim">
        {[
          phase,
          total === null ? size(bytes) : `${size(bytes)} of ${size(total)}`,
          rate > 0 && `${size(rate)}/s`,
          eta !== null && `${span(eta)} left`,
        ]
          .filter(Boolean)
          .join(", ")}
      </span>
    </p>
  );
}
