// A report: the description is in the file itself.
import { modelView } from "./model.js";

const data = JSON.parse(document.getElementById("data").textContent);
document.getElementById("view").replaceChildren(modelView(data));
