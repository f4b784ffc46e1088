/* A button at each block of commands, configuration or code copies it: of a session at a terminal what one types, without prompts and output. */
if (navigator.clipboard)
  for (const block of document.querySelectorAll(
    ".highlight-sh, .highlight-console, .highlight-yaml, .highlight-json, .highlight-ts",
  )) {
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      const typed = block.querySelector("pre").cloneNode(true);
      for (const part of typed.querySelectorAll(".gp, .go")) part.remove();
      // Output leaves its line ends.
      const isSession = block.matches(".highlight-console");
      await navigator.clipboard.writeText(
        isSession ? typed.textContent.replace(/\n+/g, "\n") : typed.textContent,
      );
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 2_000);
    });
    block.append(button);
  }
