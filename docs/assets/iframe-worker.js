// Lets the search work where the pages are read from a folder: browsers start no worker from file:// there.
// The worker's script runs in a hidden frame instead, and messages are handed over in both directions.
if (location.protocol === "file:") {
  window.IFrameWorker = class IFrameWorker extends EventTarget {
    constructor(script) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.frame = frame;
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...addresses) =>
        Promise.all(addresses.map((address) => this.load(address)));
      this.load(script).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    load(address) {
      const page = this.frame.contentDocument;
      return new Promise((done, failed) => {
        const element = page.createElement("script");
        element.src = String(address);
        element.onload = done;
        element.onerror = failed;
        page.body.appendChild(element);
      });
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
