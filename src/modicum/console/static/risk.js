// The chooser of epsilon: a slider and a number that follow each other, and a file that
// is read into the form without being uploaded anywhere.

// The candidates of the study on the page: which of them a target would lead to.
const rows = [...document.querySelectorAll("tr[data-ratio]")].map((row) => row.dataset);
const found = (tau) => rows.filter((row) => Number(row.ratio) >= tau).pop();

for (const slider of document.querySelectorAll("input[type=range][data-number]")) {
  const number = document.getElementById(slider.dataset.number);
  const output = slider.closest(".field").querySelector("output");
  const say = () => {
    const tau = Number(slider.value);
    let text = `${slider.dataset.name} ${tau.toFixed(2)}`;
    if (rows.length) {
      const one = found(tau);
      text += one ? `, epsilon ${one.epsilon}, error plus or minus ${one.error}`
        : ", no candidate";
      output.value = `In the result on this page: ${text}`;
    }
    slider.setAttribute("aria-valuetext", text);
  };
  slider.addEventListener("input", () => {
    number.value = slider.value;
    say();
  });
  number.addEventListener("input", () => {
    if (number.validity.valid && number.value) slider.value = number.value;
    say();
  });
  slider.hidden = false;
  say();
}

for (const file of document.querySelectorAll("input[type=file][data-into]")) {
  file.closest("[hidden]").hidden = false;
  file.addEventListener("change", async () => {
    const text = document.getElementById(file.dataset.into);
    if (file.files[0]) text.value = await file.files[0].text();
  });
}
