import { createRoot } from "react-dom/client";
import "./shell/tokens.css";
import "./shell/base.css";
import "./components/components.css";
import { App } from "./shell/App";
import { applyTheme } from "./shell/theme";

applyTheme();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
