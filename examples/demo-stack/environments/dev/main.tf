terraform {
  required_version = ">= 1.10"
}

variable "services" {
  description = "What runs here, by name."
  type = map(object({
    replicas = number
    port     = number
  }))
}

variable "admin_token" {
  description = "Given per run; never shown."
  type        = string
  sensitive   = true
  default     = "unset"
}

module "service" {
  source   = "../../modules/service"
  for_each = var.services

  name     = each.key
  replicas = each.value.replicas
  port     = each.value.port
}

resource "terraform_data" "admin" {
  input = { token = var.admin_token }
}

output "addresses" {
  description = "Where each service listens."
  value       = { for name, service in module.service : name => service.address }
}

output "admin_token" {
  value     = terraform_data.admin.output.token
  sensitive = true
}
