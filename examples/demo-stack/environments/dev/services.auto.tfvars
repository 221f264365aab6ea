services = {
  web = { replicas = 2, port = 8000 }
  api = { replicas = 3, port = 9000 }
}
