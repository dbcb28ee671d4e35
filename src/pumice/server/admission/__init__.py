"""`pumice admission`: the rules of `pumice.admission` behind an HTTPS server, with certificates that it looks after by itself."""
